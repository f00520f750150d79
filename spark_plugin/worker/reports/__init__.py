"""What a join counts and says of itself."""
