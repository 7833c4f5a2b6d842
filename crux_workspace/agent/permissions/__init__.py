"""Who may do what: requests, rules, policies, the gate, and what waits for a person."""
