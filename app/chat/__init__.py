"""The conversation: chat list, messages, composer, and the session that joins them to engine and store."""
