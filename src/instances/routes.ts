import { z } from "zod";
import { Reply } from "../http/answer.ts";
import { changeOf, modelLimits, trimmedText } from "../http/fields.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Asked, type Route, route } from "../http/route.ts";
import { isoTime, isoTimeOrNull } from "../lib/clock.ts";
import { currencyForm, idForm, moneyForm } from "../lib/forms.ts";
import { CURRENCY, formatMoney, type Micros } from "../lib/money.ts";
import { record } from "../lib/record.ts";
import { ModelLimitsRecord, showModelLimits, withModelLimits } from "../limits/model-limits.ts";
import type { Payment } from "../payments/payment.ts";
import { hasProof } from "../payments/proof.ts";
import type { Instances } from "./instances.ts";
import { INSTANCE_STATUSES, type Instance } from "./schema.ts";

const InstanceRecord = record("Instance", () =>
  z.object({
    instanceId: idForm("inst"),
    name: z.string(),
    status: z.enum(INSTANCE_STATUSES),
    statusReason: z.string().nullable(),
    createdAt: z.iso.datetime(),
    startedAt: z.iso.datetime().nullable(),
    stoppedAt: z.iso.datetime().nullable(),
    agentCount: z.int(),
    modelLimits: ModelLimitsRecord,
    billing: z.object({ pricePerHour: moneyForm("0.030000"), accrued: moneyForm("0.000000"), currency: currencyForm }),
  }),
);

const name = trimmedText(1, 100);
const statusFilter = z.enum(INSTANCE_STATUSES, { error: `one of ${INSTANCE_STATUSES.join(", ")}` }).optional();

export interface InstanceRouteParts {
  instances: Instances;
  pricePerHour: Micros;
  /** What an instance has cost over its life, up to this moment. */
  costOf(instanceId: string): Micros;
  /** Takes the request's payment, if it has one. Throws `invalid_request` for a malformed header. */
  takePayment(accountId: string, request: Request, requestId: string): Promise<Payment | null>;
}

export function instanceRoutes({ instances, pricePerHour, costOf, takePayment }: InstanceRouteParts): Route[] {
  const show = (instance: Instance) => ({
    instanceId: instance.instanceId,
    name: instance.name,
    status: instance.status,
    statusReason: instance.statusReason,
    createdAt: isoTime(instance.createdAt),
    startedAt: isoTimeOrNull(instance.startedAt),
    stoppedAt: isoTimeOrNull(instance.stoppedAt),
    agentCount: instance.agentCount,
    modelLimits: showModelLimits(instance.modelLimits),
    billing: {
      pricePerHour: formatMoney(pricePerHour),
      accrued: formatMoney(costOf(instance.instanceId)),
      currency: CURRENCY,
    },
  });

  const own = ({ caller, params }: Asked<{ instanceId: string }>) => instances.get(caller, params.instanceId);

  /** The answer of an operation whose request may have paid for it. */
  const showPaid = (status: number, instance: Instance, payment: Payment | null) =>
    new Reply(status, show(instance), payment?.kind === "credited" ? payment.headers : {});

  return [
    route({
      method: "POST",
      path: "/v1/instances",
      name: "createInstance",
      tag: "instances",
      summary: "Create an instance",
      description:
        "It is billed while it runs, from now on. A balance below the host's minimum is 402: pay, and repeat the request with `X-PAYMENT`.",
      access: "account",
      bound: "outside",
      body: z.object({ name }),
      example: { name: "home" },
      status: 201,
      answer: InstanceRecord,
      errors: ["payment_required", "conflict"],
      commit: "shared",
      async handle({ caller, request, requestId, body, commit }) {
        // A transfer that was made is credited even if something is wrong with the request.
        const payment = await takePayment(caller.accountId, request, requestId);
        const { name } = await body();
        instances.requireRoom(caller.accountId);
        await instances.requireLaunch(caller.accountId, payment);
        return commit(() => showPaid(201, instances.create(caller, name), payment));
      },
    }),
    route({
      method: "GET",
      path: "/v1/instances",
      name: "listInstances",
      tag: "instances",
      summary: "List instances, newest first",
      access: "read",
      bound: "page",
      query: pageQuery.extend({ status: statusFilter }),
      answer: pageOf(InstanceRecord),
      handle({ caller, query, startPage }) {
        const { status = null, ...page } = query();
        const start = startPage(`instances ${caller.accountId} ${status}`, page);
        const rows = instances.list(caller, { status, before: start.position, limit: start.limit + 1 });
        return toPage(start, rows, (row) => row.instanceId, show);
      },
    }),
    route({
      method: "GET",
      path: "/v1/instances/:instanceId",
      name: "getInstance",
      tag: "instances",
      summary: "One instance, live",
      access: "read",
      bound: "record",
      answer: InstanceRecord,
      find: own,
      handle: ({ found }) => show(found),
    }),
    route({
      method: "PATCH",
      path: "/v1/instances/:instanceId",
      name: "updateInstance",
      tag: "instances",
      summary: "Rename an instance, or limit what its models may take",
      access: "write",
      bound: "record",
      body: changeOf({ name: name.optional(), modelLimits: modelLimits.optional() }),
      example: { name: "at home", modelLimits: { tokensPerDay: 500_000 } },
      answer: InstanceRecord,
      find: own,
      commit: "shared",
      write({ found, body: { name, modelLimits } }) {
        const limits =
          modelLimits === undefined ? {} : { modelLimits: withModelLimits(found.modelLimits, modelLimits) };
        return show(instances.change(found, { ...(name !== undefined && { name }), ...limits }));
      },
    }),
    route({
      method: "POST",
      path: "/v1/instances/:instanceId/stop",
      name: "stopInstance",
      tag: "instances",
      summary: "Stop an instance; billing pauses",
      description: "It costs nothing until it is started. Answers in progress end as cancelled.",
      access: "write",
      bound: "record",
      answer: InstanceRecord,
      find: own,
      commit: "shared",
      write: ({ found }) => show(instances.stop(found)),
    }),
    route({
      method: "POST",
      path: "/v1/instances/:instanceId/start",
      name: "startInstance",
      tag: "instances",
      summary: "Start a stopped instance",
      access: "write",
      bound: "outside",
      answer: InstanceRecord,
      errors: ["payment_required"],
      commit: "shared",
      async handle({ body, commit, ...asked }) {
        // A transfer that was made is credited even if there is no such instance, so this route has no `find`, which
        // would run first. An error of the transfer is reported after that of the instance.
        if (!hasProof(asked.request.headers)) own(asked);
        const { caller, request, requestId } = asked;
        const payment = await takePayment(caller.accountId, request, requestId).finally(() => own(asked));
        await body();
        const { status, accountId } = own(asked);
        if (status !== "running") await instances.requireLaunch(accountId, payment);
        return commit(() => showPaid(200, instances.start(own(asked)), payment));
      },
    }),
    route({
      method: "DELETE",
      path: "/v1/instances/:instanceId",
      name: "deleteInstance",
      tag: "instances",
      summary: "Destroy an instance with its agents, secrets and history",
      access: "write",
      bound: "record",
      answer: z.object({ instanceId: idForm("inst"), deleted: z.literal(true) }),
      find: own,
      commit: "alone",
      write({ found }) {
        instances.remove(found);
        return { instanceId: found.instanceId, deleted: true };
      },
    }),
  ];
}
