"""What pgbr costs: beside the bare tools in time, and in memory. See README.md here."""
