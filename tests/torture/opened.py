from tests.torture.readers import Family
OPENED: dict[str, Family] = {}
