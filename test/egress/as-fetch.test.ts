import { expect, test } from "bun:test";
import { asFetch } from "../../src/egress/as-fetch.ts";
import { createEgress } from "../../src/egress/egress.ts";
import { createEgressPolicy } from "../../src/egress/policy.ts";
import { startHostileWeb } from "./hostile-web.ts";

test.each(["600", "999"])(
  "an answer with the status %s, which HTTP does not have, is a failure of its server",
  async (status) => {
    const answer = () => Buffer.from(`HTTP/1.1 ${status} Odd\r\nContent-Length: 3\r\n\r\nodd`);
    const web = startHostileWeb({ answers: { "/odd": answer } });
    const egress = createEgress({ policy: createEgressPolicy([`127.0.0.1:${web.port}`]) });
    const fetch = asFetch(egress, { accountId: "acc_a", instanceId: "inst_a" });
    const given = await fetch(`http://127.0.0.1:${web.port}/odd`);
    expect([given.status, await given.text()]).toEqual([599, "odd"]);
    web.stop();
  },
);
