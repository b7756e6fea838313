"""Plans, runs and simulations as text, JSON, pages and pictures."""
