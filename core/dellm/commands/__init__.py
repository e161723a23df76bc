"""The commands of the `dellm` command line, by what they are for. See dellm.cli."""
