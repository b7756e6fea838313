"""Plans and results as tables for people (rich) and as dictionaries for programs (JSON)."""
