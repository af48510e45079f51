"""Where messages are written: the field, attached files, history, the count of tokens, what waits."""
