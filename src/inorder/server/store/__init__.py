"""The stores of other machines: the WebSocket below `/inorder/v1/store`."""
