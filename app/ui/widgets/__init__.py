"""Small parts that docks and pages are made of."""
