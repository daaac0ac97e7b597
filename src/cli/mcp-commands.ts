import type { Command } from "commander";
import { headerLine } from "./arguments.ts";

type Adds = (command: Command) => Command;

/** What every command of a kind has: the arguments and options of an instance's, with `--yes`, with `--json`. */
export interface McpCommandParts {
  inInstance: Adds;
  sure: Adds;
  asJson: Adds;
}

/** `roost mcp …` */
export function addMcpCommands(mcp: Command, { inInstance, sure, asJson }: McpCommandParts): void {
  const named = (name: string, description: string): Command => inInstance(mcp.command(name).description(description));
  const headers = (command: Command): Command =>
    command.option(
      "--header <line>",
      "sent with each request, such as 'Authorization: Bearer {{secret:DOCS_TOKEN}}'; may come several times",
      headerLine,
    );
  asJson(named("list", "list an instance's MCP servers, or with a server its tools"))
    .argument("[server]", "its name or id")
    .action(async (instance, server: string | undefined, options) => {
      const { listServers, listTools } = await import("./user/mcp.ts");
      await (server === undefined ? listServers(instance, options) : listTools(instance, server, options));
    });
  headers(asJson(named("add", "have an instance's agents use the tools of an MCP server")))
    .argument("<name>", "what its tools begin with: docs gives docs__search")
    .argument("<address>", "its URL")
    .action(async (instance, name, address, options) =>
      (await import("./user/mcp.ts")).addServer(instance, name, address, options),
    );
  asJson(named("refresh", "ask an MCP server for its tools as they are now"))
    .argument("<server>", "its name or id")
    .action(async (instance, server, options) =>
      (await import("./user/mcp.ts")).refreshServer(instance, server, options),
    );
  asJson(named("authorize", "let an instance's agents use an MCP server as you: consent in a browser, and wait for it"))
    .argument("<server>", "its name or id")
    .option("--print", "only print the address to open")
    .action(async (instance, server, options) =>
      (await import("./user/mcp-authorize.ts")).authorizeMcpServer(instance, server, options),
    );
  sure(named("approve", "accept an MCP server's new and changed tools"))
    .argument("<server>", "its name or id")
    .argument("[tools...]", "only these, as the server calls them")
    .action(async (instance, server, tools, options) =>
      (await import("./user/mcp.ts")).approveTools(instance, server, tools, options),
    );
  sure(named("remove", "remove an MCP server, and its tools from every agent"))
    .argument("<server>", "its name or id")
    .action(async (instance, server, options) =>
      (await import("./user/mcp.ts")).removeServer(instance, server, options),
    );
}
