import type { WebPage } from "../http/server.ts";

/** The pages of the console. */
export const consolePages = (): WebPage[] => [];
