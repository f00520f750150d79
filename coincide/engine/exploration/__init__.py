"""What a join would find at any confidence, in numbers and charts."""
