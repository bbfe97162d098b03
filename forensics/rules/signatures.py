"""Rules that are data: this message means that (`signatures/*.toml`)."""
