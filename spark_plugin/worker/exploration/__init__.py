"""What a join would find at any confidence: all candidates, looked at once, run by run, and drawn."""
