/**
 * A hub of models with the API of Hugging Face, as far as `roost models pull` uses it: commits, lists of files with their
 * hashes, and files by ranges. Large files come from another origin, as the hub's do. It cuts connections on demand.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

export interface Asked {
  /** Of the server that was asked: the hub or where its large files are. */
  origin: string;
  path: string;
  range: string | undefined;
  authorization: string | undefined;
  /** Bytes of a file that were sent. */
  sent: number;
}

export interface StandInHub {
  url: string;
  /** Where large files come from. */
  filesUrl: string;
  asked: Asked[];
  /** Requests for files, by path. */
  ranges(path: string): (string | undefined)[];
  /** Paths and contents of the repository's files; they may be changed. */
  files: Map<string, Buffer>;
  /** The commit of `main`; change it with the files. */
  revision: string;
  behaviour: Behaviour;
  /** A reader has so many bytes of the file that is being sent. */
  cutAt(bytes: number): void;
  close(): Promise<void>;
}

export interface Behaviour {
  /**
   * Bytes after which a large file's connection is cut, for each request in turn; the ones that follow are whole. It is
   * cut once `cutAt` says that they have arrived: of a connection that breaks, a reader loses what it has not read yet.
   */
  cuts: number[];
  /** A large file's answer stops after so many bytes, and the connection stays open. */
  hangsAfter?: number | undefined;
  /** Resolves `hung`. */
  onHang?: () => void;
  ignoresRanges?: boolean;
  /** Needed for everything. */
  token?: string;
  /** Answers to requests for large files, before any of them is sent. */
  statuses: number[];
  /** Added to the list of files. */
  lists?: { type: string; path: string; size: number; oid: string }[];
  /** Bytes that are sent in place of a file's. */
  sends?: Map<string, Buffer>;
  /** Entries of a page of the list. */
  page?: number;
}

const LARGE_BYTES = 20_000;

/** A hub with one repository, whose files are those of a folder. */
export async function startHub(repository: string, folder: string): Promise<StandInHub> {
  const files = new Map<string, Buffer>();
  for (const name of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!name.isFile()) continue;
    const path = join(name.parentPath, name.name);
    files.set(path.slice(folder.length + 1), readFileSync(path));
  }
  const behaviour: Behaviour = { cuts: [], statuses: [] };
  const asked: Asked[] = [];
  const toCut = new Map<ServerResponse, number>();
  const api = createServer((request, response) => void answer(request, response, "hub"));
  const store = createServer((request, response) => void answer(request, response, "files"));
  const [url, filesUrl] = await Promise.all([listen(api), listen(store)]);
  const hub: StandInHub = {
    url,
    filesUrl,
    asked,
    files,
    revision: "1".repeat(40),
    behaviour,
    ranges: (path) => asked.filter((one) => one.path === `/blobs/${path}`).map(({ range }) => range),
    cutAt(bytes) {
      for (const [response, end] of toCut) {
        if (bytes !== end) continue;
        toCut.delete(response);
        response.socket?.destroy();
      }
    },
    async close() {
      for (const server of [api, store]) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };

  function answer(request: IncomingMessage, response: ServerResponse, where: "hub" | "files"): void {
    const { pathname: path, searchParams } = new URL(request.url ?? "/", "http://localhost");
    const { range, authorization } = request.headers;
    const entry: Asked = { origin: where === "hub" ? url : filesUrl, path, range, authorization, sent: 0 };
    asked.push(entry);
    const refuse = (status: number) => void response.writeHead(status).end("{}");
    const resolved = `/${repository}/resolve/${hub.revision}/`;
    if (where === "files") {
      send(request, response, path.replace("/blobs/", ""), entry);
    } else if (behaviour.token !== undefined && authorization !== `Bearer ${behaviour.token}`) {
      refuse(401);
    } else if (path === `/api/models/${repository}/revision/main`) {
      json(response, { id: repository, sha: hub.revision });
    } else if (path === `/api/models/${repository}/tree/${hub.revision}`) {
      tree(response, Number(searchParams.get("cursor")));
    } else if (path.startsWith(resolved)) {
      const name = path.slice(resolved.length);
      const file = files.get(name);
      if (file === undefined) refuse(404);
      else if (file.length < LARGE_BYTES) send(request, response, name, entry);
      else response.writeHead(302, { location: `${filesUrl}/blobs/${name}` }).end();
    } else refuse(404);
  }

  function tree(response: ServerResponse, from: number): void {
    const list = [
      { type: "directory", path: "onnx", size: 0, oid: "0".repeat(40) },
      ...[...files].map(([path, bytes]) => {
        const git = createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
        const lfs = { oid: createHash("sha256").update(bytes).digest("hex"), size: bytes.length, pointerSize: 134 };
        return { type: "file", path, size: bytes.length, oid: git, ...(bytes.length < LARGE_BYTES ? {} : { lfs }) };
      }),
      ...(behaviour.lists ?? []),
    ];
    const page = behaviour.page ?? list.length;
    if (from + page < list.length) {
      const next = `${url}/api/models/${repository}/tree/${hub.revision}?recursive=true&cursor=${from + page}`;
      response.setHeader("link", `<${next}>; rel="next"`);
    }
    json(response, list.slice(from, from + page));
  }

  function send(request: IncomingMessage, response: ServerResponse, name: string, entry: Asked): void {
    const isLarge = entry.origin === filesUrl;
    const status = isLarge ? behaviour.statuses.shift() : undefined;
    if (status !== undefined) {
      response.writeHead(status).end();
      return;
    }
    const bytes = behaviour.sends?.get(name) ?? files.get(name) ?? Buffer.alloc(0);
    const [, offset] = behaviour.ignoresRanges ? [] : (/^bytes=(\d+)-$/.exec(request.headers.range ?? "") ?? []);
    const from = Number(offset ?? 0);
    const rest = bytes.subarray(from);
    const cut = isLarge ? behaviour.cuts.shift() : undefined;
    const part = rest.subarray(0, cut ?? (isLarge ? behaviour.hangsAfter : undefined) ?? rest.length);
    entry.sent = part.length;
    response.writeHead(offset === undefined ? 200 : 206, {
      "content-length": rest.length,
      ...(offset === undefined ? {} : { "content-range": `bytes ${from}-${bytes.length - 1}/${bytes.length}` }),
    });
    if (part.length === rest.length) {
      response.end(part);
      return;
    }
    if (cut !== undefined && cut > 0) toCut.set(response, from + cut);
    response.write(part, () => {
      if (cut === 0) response.socket?.destroy();
      else if (cut === undefined) behaviour.onHang?.();
    });
  }

  return hub;
}

const json = (response: ServerResponse, value: unknown): void =>
  void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));

async function listen(server: ReturnType<typeof createServer>): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
