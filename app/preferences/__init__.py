"""The settings dialog: a page per subject, every change applied at once."""
