"""A store elsewhere, which `inorder serve` on another machine has open. Only `stores/open.py` loads its client."""
