/** The names of tools of MCP servers: the server's name, and the tool's own. */
const OF_SERVER = /^(?<server>[a-z0-9][a-z0-9-]{0,30})__[A-Za-z0-9_.-]{1,63}$/;

/** The name of the server that has a tool of this name; undefined if none can. */
export const serverOf = (tool: string): string | undefined =>
  tool.length <= 64 ? OF_SERVER.exec(tool)?.groups?.server : undefined;

/** Whether an agent might have a tool of this name, now or once a server is added. */
export const isOfServer = (name: string): boolean => serverOf(name) !== undefined;
