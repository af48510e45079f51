"""Text files that belong to a message: read, kept in its text, shown as chips."""
