"""Running commands: in a folder of this machine, or in a checkout of a workspace."""
