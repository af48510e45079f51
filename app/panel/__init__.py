"""The live panel: speed, where experts run, memory."""
