"""What is inside a dump: told from its bytes alone, without a server and without running anything."""
