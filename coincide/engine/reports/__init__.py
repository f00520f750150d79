"""What an operator tells of itself: numbers for who asks, warnings for who does not."""
