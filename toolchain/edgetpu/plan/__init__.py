"""Which operator runs on which device, and what is proved about that."""
