"""The live panel: speed, where the time goes, experts, the machine, the history of the chat."""
