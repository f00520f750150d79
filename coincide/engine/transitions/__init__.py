"""Region transitions of crossings."""
