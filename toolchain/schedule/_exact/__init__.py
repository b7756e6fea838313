"""The exact search behind `auto`; its theorems are proved in `docs/schedulers.md`."""
