"""The command line: one thin file per command. Only this room prints, and only it exits."""
