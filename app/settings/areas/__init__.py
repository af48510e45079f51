"""The settings by area: a module each, whose options stand in the order in which the dialog shows them.

A new option is a constant here and nothing else: `app.settings.registry` finds it.
"""
