"""The error of one clock against another: what is looked for, how sure an answer is, and what it says."""
