"""The way of a small side: it goes to every worker once, and the other side streams through, unshuffled."""
