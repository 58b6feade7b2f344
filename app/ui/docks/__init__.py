"""The panels around the view."""
