"""The first-launch wizard: a state machine without a display (`flow`), and the pages that show it."""
