"""The ways on which the events of two sides meet; `choice` chooses."""
