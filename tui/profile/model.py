"""A profile, as frozen pydantic models. See the README's section on profiles for the format."""
