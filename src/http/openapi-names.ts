import { z } from "zod";
import type { Route } from "./route.ts";

/** What the document calls a route: its operation and its section. Both come from the path. */
export interface RouteName {
  operationId: string;
  tag: string;
}

const VERBS = { GET: "get", POST: "create", PUT: "put", PATCH: "update", DELETE: "delete" };

/** `listAgentMessages` in messages, `stopInstance` in instances, `sendCode` in auth: the verb, the holder, the thing. */
export function nameOf(route: Route): RouteName {
  const { noun, holder, isOne } = nounsOf(route.path);
  const top = route.path.split("/")[2] ?? "";
  // An action is a word with a verb of its own, or one thing's, that is no collection.
  const isAction = route.method === "POST" && (noun.includes("-") || (holder !== "" && !noun.endsWith("s")));
  const tag = top !== "instances" ? top : isAction ? holder : noun;
  if (isAction) return { operationId: camel(noun) + pascal(singular(holder)), tag };
  const isList = pageItem(route.answer) !== null;
  const verb = isList ? "list" : route.answer === "text/event-stream" ? "stream" : VERBS[route.method];
  const thing = isOne || verb === "create" ? singular(noun) : noun;
  return { operationId: verb + pascal(singular(holder)) + pascal(thing), tag };
}

/** The last fixed part of a path, the collection that it is in, and whether one of its things is meant. */
function nounsOf(path: string): { noun: string; holder: string; isOne: boolean } {
  const parts = path.split("/").slice(2);
  const isOne = /^[:*]/.test(parts.at(-1) ?? "");
  const [holder, id, noun] = ["", "", "", ...(isOne ? parts.slice(0, -1) : parts)].slice(-3);
  return { noun: noun === "me" ? "account" : (noun ?? ""), holder: id?.startsWith(":") ? (holder ?? "") : "", isOne };
}

const singular = (noun: string): string => noun.replace(/s$/, "");
const camel = (words: string): string => words.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
const pascal = (words: string): string => camel(`-${words}`).replace("-", "");

/** The schema of a list's records; null for an answer that is no list. */
function pageItem(answer: Route["answer"]): z.ZodType | null {
  if (!(answer instanceof z.ZodObject)) return null;
  const { data } = answer.shape as { data?: unknown };
  return data instanceof z.ZodArray ? (data.element as z.ZodType) : null;
}

/**
 * The records of the API with their names. A record is called what the path of its GET calls it: first the one of a
 * single thing, then what lists show, which is "Listed…" where that is less and has the holder in its name where both
 * are taken.
 */
export function recordNames(routes: readonly Route[]): Map<z.ZodType, string> {
  const names = new Map<string, z.ZodType>();
  const reads = routes.filter(({ method, answer }) => method === "GET" && answer instanceof z.ZodType);
  const known = new Set<z.ZodType>();
  for (const route of [
    ...reads.filter(({ answer }) => pageItem(answer) === null),
    ...reads.filter(({ answer }) => pageItem(answer) !== null),
  ]) {
    const record = pageItem(route.answer) ?? (route.answer as z.ZodType);
    const { noun, holder } = nounsOf(route.path);
    const name = pascal(singular(noun));
    const free = [name, `Listed${name}`, pascal(singular(holder)) + name].find((candidate) => !names.has(candidate));
    if (free === undefined || known.has(record)) continue;
    known.add(record);
    names.set(free, record);
  }
  return new Map([...names].map(([name, record]) => [record, name]));
}
