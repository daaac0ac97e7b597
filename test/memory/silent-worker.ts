declare const self: Worker & { onmessage: (event: MessageEvent) => void };

/** Hears everything and says nothing. */
self.onmessage = () => {};
