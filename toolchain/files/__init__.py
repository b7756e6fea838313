"""Files that others wrote, read with limits: JSON, TOML, NumPy. Errors name the field."""
