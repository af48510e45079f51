"""What makes the program a good citizen of the desktop: one window, keys, notices, sleep, its own log."""
