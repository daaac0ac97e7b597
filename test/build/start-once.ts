/** Starts the given binary, checks its health and stops it. A program of its own, to be run in another network. */
import { startBinary } from "../support/binary.ts";

const server = await startBinary({ binary: process.argv[2] ?? "dist/roost" });
const { status } = await fetch(`${server.url}/healthz`);
console.log(`answered ${status}, ended with ${await server.stop()}`);
