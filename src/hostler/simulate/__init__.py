"""What a sweep would cost and how long it would take: the real decisions on a virtual clock."""
