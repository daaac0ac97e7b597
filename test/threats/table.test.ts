/**
 * Where each threat of docs/contract is tried. What is in this folder runs on the compiled binary, under the threat's own words;
 * what needs a world of its own, or a place inside, is elsewhere.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { type PageName, readContract, sectionOf } from "../contract/pages.ts";

/** By table and threat: the file, and the name of the test where it is not the threat's own. */
const TRIED: Record<string, Record<string, [file: string, title?: string][]>> = {
  "runtime: Isolation": {
    "a file name that leaves the workspace, a symbolic link, a race": [["isolation"]],
    "a workspace that fills the host": [
      ["isolation"],
      ["../attacks/stores", "an account writes files as fast as it can: the quota stops it"],
    ],
    "an agent's run reaches more than it may": [
      ["../architecture/imports", "reaches no database, no network and no file"],
    ],
    "a run that hangs": [["../runtime/host", "a worker that blocks its event loop is ended, and its runs fail"]],
    "a model that takes the host down": [["isolation"]],
    "one instance starves the others": [
      ["isolation"],
      ["../attacks/runs", "270 agents wait for a model that hangs: another's message is answered"],
      ["../attacks/scripts", "forty instances run endless and greedy scripts: another's are run in between"],
    ],
    "an agent's request reaches the host's own network": [
      ["requests", "loopback, private networks, and this machine's own addresses and name"],
      ["requests", "to loopback, in any form, is judged as a first request is"],
    ],
    "a page that takes for ever to read": [
      ["../attacks/web", "read pages that take for ever: another's pages are read"],
    ],
    "a model that gives a secret away": [["isolation"]],
    "a script of an agent reaches the host": [
      ["scripts"],
      ["scripts", "is refused every system call that would leave its process, in each of its threads"],
    ],
    "a script that takes all it can get": [
      ["../attacks/scripts", "forty instances run endless and greedy scripts"],
      ["../sandbox/escapes", "%s ends with an error that the model gets"],
    ],
  },
  "security: Agents that act": {
    "an agent does what its owner does not want": [["acting"]],
    "a text talks the agent into something": [["acting"]],
    "a text pretends to be an approval": [["acting"]],
    "an approval hides what it is for": [
      ["../cli/approval", "what nobody would see of a call or a question is shown as escapes"],
    ],
    "something else is done than was shown": [["acting"]],
    "an approval is used for more": [["acting"]],
    "a stranger's text passes for an instruction": [["acting"]],
    "an agent overwrites what a person has just written": [["acting"]],
  },
  "security: Skills": {
    "a skill hides orders from whoever reads it": [["skills"]],
    "a skill changes after it was read": [["skills"]],
    "a skill takes rights": [["skills"]],
    "a skill passes for another": [["skills"]],
    "a large or nested front matter": [["skills"]],
  },
  "security: Bundles": {
    "a bundle acts on its import": [
      ["../bundles/review", "an import asks no model, sends nothing"],
      ["../bundles/review", "what allows an agent anything arrives switched off"],
      ["../bundles/review", "no skill is installed"],
    ],
    "a bundle carries a secret away": [["../bundles/export", "no value of a secret is in a bundle"]],
    "an archive reaches beyond its folder": [["../bundles/hostile", "a name that leads out"]],
    "an archive explodes": [["../bundles/hostile", "a bomb"]],
    "a history speaks for the owner": [["../bundles/review", "what is said to be the agent's"]],
  },
  "security: MCP servers": {
    "a server's tool does what its owner does not want": [["mcp-servers"]],
    "a tool that was approved becomes another": [["mcp-servers"]],
    "a server's answer talks the agent into something": [["mcp-servers"]],
    "a secret goes to another server, or comes back": [["mcp-servers"]],
    "a description hides orders, or a name passes for another's": [
      ["../mcp/hostile", "nothing is taken that is too large, too deep or misleading"],
    ],
    "a schema that does harm": [["../mcp/hostile", "nothing is taken that is too large, too deep or misleading"]],
    "an answer without end, too deep, or a list that never ends": [
      ["../mcp/hostile", "an answer without end is left when it is too large"],
      ["../mcp/hostile", "an answer nested too deep is not read"],
      ["../mcp/hostile", "a cursor that comes again ends the list"],
      ["../mcp/hostile", "a server that keeps asking is answered no more than now and then"],
    ],
    "a call is made twice": [["mcp-servers"]],
    "an account opens connections without end": [["../mcp/connections", "an account has no more than 16 clients"]],
    "a server that is a program on the host": [["mcp-servers"]],
  },
  "security: Requests of agents": {
    "a host that agents are not meant for": [["requests"]],
    "a name that leads into the host's network, or to another address the second time": [
      ["requests", "is refused if any of its addresses is not public"],
      ["requests", "or to another address the second time: it is asked for once, and refused when it is"],
    ],
    "a name server that never answers": [["../egress/resolve", "what waits for the disk is not kept from it"]],
    "addresses that are never meant": [["requests"]],
    "a URL that two readers understand differently": [["requests"]],
    "a false server": [["requests"]],
    "a redirect": [["requests"]],
    "an endless, slow or exploding answer": [["requests"], ["../egress/egress", "%s ends at the deadline"]],
    "a flood": [["../attacks/web", "agents hold all its connections"]],
    "a header that becomes two": [["requests"]],
  },
  "security: Authorization of MCP servers": {
    "a state is guessed, stolen or used twice": [
      ["../oauth/authorization", "is believed once"],
      ["../oauth/authorization", "too late counts no more, and is removed"],
      ["../oauth/authorization", "of an earlier beginning for the same server counts no more"],
      ["../oauth/authorization", "of a server that was removed, or has another URL now, counts no more"],
    ],
    "a code of somebody else is slipped into an authorization": [
      ["../oauth/authorization", "a code of another authorization is worth nothing"],
      ["../oauth/authorization", "the authorization server does not say that it supports PKCE"],
    ],
    "one authorization server passes for another": [
      ["../oauth/authorization", "the metadata is that of another issuer"],
      ["../oauth/authorization", "of another issuer"],
      ["../oauth/authorization", "a denial of another issuer is not taken for one"],
    ],
    "a token for one server is shown to another": [
      ["../oauth/authorization", "open for no other server and no other issuer"],
      ["../oauth/flow", "the token of the old one is revoked, not shown to it"],
    ],
    "a server's metadata leads into the host's network": [
      ["../oauth/authorization", "the challenge names metadata inside of the network"],
      ["../oauth/authorization", "the registration answers with a redirect"],
      ["../oauth/authorization", "the metadata does not end"],
    ],
    "the page to open is not a page": [["../oauth/authorization", "the page to open is no page"]],
    "tokens leak": [
      ["../oauth/authorization", "are on no disk in the clear, nor is a state"],
      ["../oauth/flow", "a token that the server repeats is taken out"],
    ],
    "a refresh token is used twice": [
      ["../oauth/authorization", "four who find a token refused at once cause one renewal"],
      ["../oauth/authorization", "are forgotten once their renewal is refused"],
    ],
    "somebody is made to authorize another's account": [
      ["../oauth/flow", "who consents in the browser has the server's tools approved as they stand"],
      ["../oauth/flow", "the page is for a person who opens it, and counts once"],
    ],
  },
};

test("every threat in the contract's tables of agents is tried, and no other is claimed to be", async () => {
  const contract = await readContract();
  for (const [table, threats] of Object.entries(TRIED)) {
    const [page, heading = ""] = table.split(": ");
    const text = sectionOf(contract[page as PageName], heading);
    const rows = Array.from(text.matchAll(/^\| ([^|]+) \|/gm), ([, cell = ""]) => cell).filter(
      (cell) => cell !== "Threat",
    );
    expect([table, rows.toSorted()]).toEqual([table, Object.keys(threats).toSorted()]);
  }
});

test("each is tried where this table says", async () => {
  for (const [threat, places] of Object.values(TRIED).flatMap(Object.entries<[file: string, title?: string][]>)) {
    for (const [file, title] of places) {
      const source = await Bun.file(join(import.meta.dir, `${file}.test.ts`)).text();
      const isThere = title === undefined ? source.includes(`describe("${threat}"`) : source.includes(title);
      expect({ threat, file, title, isThere }).toEqual({ threat, file, title, isThere: true });
    }
  }
});
