import { lazily } from "../../lib/lazily.ts";

/** The protocol's own client: loaded once something is authorized, not at the start. */
export const loadSdk = lazily(() => import("@modelcontextprotocol/client"));
