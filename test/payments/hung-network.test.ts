import { expect, test } from "bun:test";
import { startRpcProxy } from "../support/rpc-proxy.ts";
import { launch, quoteFor, startPaying } from "./paying.ts";

test("a network whose nodes hang, and an account that presents a hundred of its transactions, delay no other payment", async () => {
  const hanging = startRpcProxy("http://127.0.0.1:9");
  hanging.hang();
  await using paying = await startPaying({
    hangs: true,
    settings: { ROOST_NETWORKS: "base,polygon", ROOST_POLYGON_RPC_URL: hanging.url },
  });
  const [payer, pest] = [await paying.someone(), await paying.someone("5.00")];
  const { amount } = await quoteFor(payer);
  const txHash = await paying.pay(amount);
  let given = 0;
  const junk = Array.from({ length: 100 }, async (_, nth) => {
    await launch(pest, `0x${nth.toString(16).padStart(64, "0")}`, "polygon");
    given++;
  });
  expect((await launch(payer, txHash)).status).toBe(201);
  expect(given).toBeLessThan(50);
  await Promise.all(junk);
  await hanging.stop();
});

test("a host that is asked to stop makes no more calls to a network that hangs", async () => {
  const hanging = startRpcProxy("http://127.0.0.1:9");
  hanging.hang();
  await using paying = await startPaying({
    hangs: true,
    settings: { ROOST_NETWORKS: "base,polygon", ROOST_POLYGON_RPC_URL: hanging.url },
  });
  const pest = await paying.someone("5.00");
  const junk = Array.from({ length: 100 }, (_, nth) =>
    launch(pest, `0x${nth.toString(16).padStart(64, "0")}`, "polygon").catch(() => null),
  );
  while (hanging.calls("eth_getTransactionReceipt") < 2) await Bun.sleep(10);
  await paying.server.app.stop();
  await Promise.all(junk);
  // What was under way by then; all hundred would have been asked about in the end.
  expect(hanging.calls("eth_getTransactionReceipt")).toBeLessThan(50);
  await hanging.stop();
});
