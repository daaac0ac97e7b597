import { inputLines } from "../../lib/input-lines.ts";
import { roost } from "./api.ts";
import { confirmPress, make, makeButton, part } from "./dom.ts";
import { INSTANCE, type McpServer } from "./records.ts";

const SERVERS = `${INSTANCE}/mcp-servers` as const;
const SERVER = `${SERVERS}/{serverId}` as const;
const list = part("mcp-list", HTMLUListElement);
const told = part("mcp-told", HTMLElement);

const STATUSES: Record<McpServer["status"], string> = {
  ready: "ready",
  unreachable: "does not answer",
  needs_authorization: "has to be authorized",
  changed: "waits for you",
};
const STATES: Record<McpServer["tools"][number]["state"], string> = {
  approved: "approved",
  new: "new",
  changed: "changed",
  gone: "no longer offered",
};

/** Between two looks at a server that somebody is authorizing. */
const LOOK_MS = 3_000;

/** What is sent to it is a header's value, which stays what it is. */
const hasOwnToken = ({ headers }: McpServer): boolean =>
  Object.keys(headers).some((name) => name.toLowerCase() === "authorization");

/** What a model is told of a tool's inputs: a tool may have changed in those alone. */
const inputs = ({ inputSchema }: McpServer["tools"][number]): HTMLElement =>
  make("ul", "soft", ...inputLines(inputSchema).map((line) => make("li", "", make("bdi", "", line))));

/** The MCP servers of an instance, with what waits for their owner. `changed` is called when agents' tools have. */
export function openMcpServers(changed: () => Promise<void>): (instanceId: string) => Promise<void> {
  let shown = "";

  async function read(of: string, opened?: string): Promise<void> {
    const servers = await Array.fromAsync(roost.all(SERVERS, { path: { instanceId: of } }));
    if (of === shown) list.replaceChildren(...servers.map((server) => row(server, server.serverId === opened)));
  }

  async function done(server: McpServer, what: string, opened?: string): Promise<void> {
    if (server.instanceId !== shown) return;
    await read(server.instanceId, opened);
    await changed();
    told.textContent = `${server.name} ${what}.`;
    told.focus();
  }

  function row(server: McpServer, isOpen: boolean): HTMLLIElement {
    const { name, url, status, serverId, instanceId } = server;
    const tag = make("span", "tag", STATUSES[status]);
    const details = make(
      "details",
      "",
      make("summary", "", make("span", "what", make("b", "", name), " ", tag), make("bdi", "soft brief", url)),
    );
    details.addEventListener("toggle", () => details.append(...about(server, { instanceId, serverId })), {
      once: true,
    });
    details.open = isOpen;
    return make("li", "", details);
  }

  /** A button that becomes a link to the page on which a person consents; what comes of it is shown. */
  function authorizing(server: McpServer, path: { instanceId: string; serverId: string }): HTMLElement {
    const place = make("p");
    place.append(
      makeButton(`Authorize ${server.name}`, "", async () => {
        const { authorizationUrl, expiresAt } = await roost.post(`${SERVER}/authorize`, { path });
        const { protocol, host } = new URL(authorizationUrl);
        if (protocol !== "https:" && protocol !== "http:") throw new Error("the server names no page to consent on");
        const link = make("a", "", `Consent at ${host}`);
        link.href = authorizationUrl;
        link.target = "_blank";
        link.rel = "noopener noreferrer";
        place.replaceChildren(link, " in a new window.");
        link.focus();
        waitForEnd(link, server, path, Date.parse(expiresAt));
      }),
    );
    return place;
  }

  /** Looks at the server now and then, while the link is shown and good. */
  function waitForEnd(
    link: HTMLElement,
    server: McpServer,
    path: { instanceId: string; serverId: string },
    end: number,
  ) {
    setTimeout(async () => {
      if (!link.isConnected || Date.now() > end) return;
      // Without an answer, the next look may have one.
      const now = await roost.get(SERVER, { path }).catch(() => server);
      if (!link.isConnected) return;
      const ended = now.lastAuthorization;
      if (ended?.endedAt === server.lastAuthorization?.endedAt) waitForEnd(link, server, path, end);
      else await done(now, ended?.outcome === "granted" ? "is authorized" : "is not authorized", server.serverId);
    }, LOOK_MS);
  }

  function about(server: McpServer, path: { instanceId: string; serverId: string }): HTMLElement[] {
    const { name, status, statusReason, tools, updatedAt } = server;
    const waiting = tools.filter(({ state }) => state !== "approved");
    const facts = tools.map((tool) =>
      make(
        "li",
        "",
        make("code", "", tool.name),
        ...(tool.state === "approved" ? [] : [make("span", "tag", STATES[tool.state])]),
        " ",
        make("bdi", "soft", tool.description),
        ...(tool.state === "new" || tool.state === "changed" ? [inputs(tool)] : []),
      ),
    );
    const remove = make("button", "quiet", "Remove");
    remove.type = "button";
    remove.setAttribute("aria-label", `Remove ${name}`);
    confirmPress(remove, "Really remove?", async () => {
      await roost.delete(SERVER, { path });
      await done(server, "is removed");
    });
    return [
      ...(statusReason === null ? [] : [make("p", "soft", statusReason)]),
      ...(status === "needs_authorization" && !hasOwnToken(server) ? [authorizing(server, path)] : []),
      make("ul", "", ...facts),
      ...(waiting.length === 0
        ? []
        : [
            makeButton(`Approve what has changed of ${name}`, "", async () => {
              // Exactly what is shown here.
              await roost.post(`${SERVER}/approve`, { path, body: { updatedAt } });
              await done(server, "is approved as it is shown", server.serverId);
            }),
          ]),
      makeButton(`Ask ${name} again`, "quiet", async () => {
        await roost.post(`${SERVER}/refresh`, { path });
        await done(server, "was asked", server.serverId);
      }),
      remove,
    ];
  }

  return async (instanceId) => {
    shown = instanceId;
    told.textContent = "";
    list.replaceChildren();
    await read(instanceId);
  };
}
