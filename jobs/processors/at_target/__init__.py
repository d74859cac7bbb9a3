"""The other end of a restore or migration: lock it, look at it, write beside it or into it, swap names."""
