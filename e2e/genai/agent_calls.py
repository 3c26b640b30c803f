"""What the programs with agents share."""


def weather(city: str) -> str:
    """Says what the weather is.

    Args:
        city: The city.
    """
    return f"it rains in {city}"
