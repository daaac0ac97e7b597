import { z } from "zod";
import { type Client, type Records, RoostError } from "./client.ts";

const Account = z.object({
  accountId: z.string(),
  email: z.string(),
  balance: z.string(),
  currency: z.string(),
});

/** The account of the client's credential. */
export const readAccount = async (client: Client): Promise<Records["Account"]> =>
  checkAccount(client, await client.get("/v1/auth/me"));

/** Any server may answer JSON: throws if this is no account, before it is shown or saved. */
export function checkAccount(client: Client, account: Records["Account"]): Records["Account"] {
  if (Account.safeParse(account).success) return account;
  throw notRoost(client);
}

export const notRoost = ({ url }: Client): RoostError =>
  new RoostError("unexpected_answer", `${url} answered, but not in Roost's format`, { server: url });
