"""Steps of a visit: one file each, with one `STEP`."""
