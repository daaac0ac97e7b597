import { expect, test } from "bun:test";
import recorded from "./recorded/open-meteo.json";
import { builtIn, requestsIn, startService } from "./service.ts";

const skill = builtIn("weather");
const [search, forecast] = requestsIn(skill);

const CURRENT = "temperature_2m apparent_temperature precipitation weather_code wind_speed_10m wind_gusts_10m".split(
  " ",
);
const HOURLY = "temperature_2m precipitation precipitation_probability weather_code".split(" ");
const DAILY = (
  "weather_code temperature_2m_max temperature_2m_min precipitation_sum precipitation_probability_max wind_gusts_10m_max " +
  "sunrise sunset"
).split(" ");
const UNITS: Record<string, string> = {
  temperature_unit: "fahrenheit",
  wind_speed_unit: "mph",
  precipitation_unit: "inch",
};

const refuse = (reason: string) => Response.json({ error: true, reason }, { status: 400 });

/** As Open-Meteo answers: it refuses parameters that it does not know. */
const startOpenMeteo = () =>
  startService(skill, {}, (request, url) => {
    const query = Object.fromEntries(url.searchParams);
    if (request.method !== "GET") return refuse("method");
    if (url.host === "geocoding-api.open-meteo.com" && url.pathname === "/v1/search") {
      const { name = "", count = "10", language, format } = query;
      if (Number(count) < 1 || Number(count) > 100 || language !== "en" || format !== "json") return refuse(url.search);
      return Response.json(/^(bergen|åsane i bergen)$/i.test(name) ? recorded.search : recorded.nothing);
    }
    if (url.host !== "api.open-meteo.com" || url.pathname !== "/v1/forecast") return refuse(url.href);
    const { latitude, longitude, timezone, forecast_days = "7", current, daily, hourly, ...units } = query;
    const isWithin = (text: string | undefined, most: number) => text !== undefined && Math.abs(Number(text)) <= most;
    if (!isWithin(latitude, 90) || !isWithin(longitude, 180) || timezone !== "auto") return refuse("place");
    if (Number(forecast_days) < 1 || Number(forecast_days) > 16) return refuse("forecast_days");
    const isKnown = (list: string | undefined, known: string[]) =>
      (list?.split(",") ?? []).every((one) => known.includes(one));
    if (!isKnown(current, CURRENT) || !isKnown(daily, DAILY) || !isKnown(hourly, HOURLY)) {
      return Response.json(recorded.refused, { status: 400 });
    }
    if (Object.entries(units).some(([name, value]) => UNITS[name] !== value)) return refuse("units");
    return Response.json(recorded.forecast);
  });

test("the service accepts the requests as they stand in the instructions, and answers what they say it answers", async () => {
  await using service = startOpenMeteo();
  const places = JSON.parse((await service.send(search ?? { method: "", url: "" })).body);
  for (const place of places.results) {
    for (const key of ["name", "admin1", "country", "latitude", "longitude"]) {
      expect(skill.instructions).toContain(`\`${key}\``);
      expect(place[key]).toBeDefined();
    }
  }
  const { status, body } = await service.send(forecast ?? { method: "", url: "" });
  expect(status).toBe(200);
  const weather = JSON.parse(body);
  const asked = new URL(forecast?.url ?? "").searchParams;
  expect(Object.keys(weather.current)).toEqual(["time", "interval", ...(asked.get("current")?.split(",") ?? [])]);
  expect(Object.keys(weather.daily)).toEqual(["time", ...(asked.get("daily")?.split(",") ?? [])]);
  for (const list of Object.values(weather.daily)) expect(list).toHaveLength(Number(asked.get("forecast_days")));
  expect(Object.keys(weather)).toEqual(expect.arrayContaining(["current_units", "daily_units"]));
  // The example's second day.
  const day = [
    "weather_code",
    "temperature_2m_min",
    "temperature_2m_max",
    "precipitation_sum",
    "precipitation_probability_max",
  ];
  expect(day.map((key) => weather.daily[key][1])).toEqual([61, 6.2, 9.8, 4.1, 87]);
});

test("what the instructions add to a request is known to the service", async () => {
  await using service = startOpenMeteo();
  const added = Array.from(skill.instructions.matchAll(/`(&[a-z_]+=[^`]+)`/g), ([, one]) => one);
  expect(added).toHaveLength(2);
  for (const one of added) {
    expect((await service.send({ method: "GET", url: `${forecast?.url}${one}` })).status).toBe(200);
  }
  for (const days of [1, 16]) {
    const url = forecast?.url.replace("forecast_days=3", `forecast_days=${days}`) ?? "";
    expect((await service.send({ method: "GET", url })).status).toBe(200);
  }
});

test("a place with blanks and other letters is found as the instructions write it; an unknown one has no results", async () => {
  await using service = startOpenMeteo();
  const find = async (name: string) =>
    JSON.parse((await service.send({ method: "GET", url: search?.url.replace("Bergen", name) ?? "" })).body);
  expect((await find("%C3%85sane+i+Bergen")).results).toHaveLength(2);
  expect(await find("Atlantis")).not.toHaveProperty("results");
});

test("an error is told as the instructions say", async () => {
  await using service = startOpenMeteo();
  const url = forecast?.url.replace("temperature_2m,", "temprature_2m,") ?? "";
  const { status, body } = await service.send({ method: "GET", url });
  expect([status, JSON.parse(body).error]).toEqual([400, true]);
  expect(JSON.parse(body).reason).toContain("temprature_2m");
});

test("every weather code of the service has words", () => {
  // WMO 4677, as far as Open-Meteo uses it.
  const codes = [
    0, 1, 2, 3, 45, 48, 51, 53, 55, 56, 57, 61, 63, 65, 66, 67, 71, 73, 75, 77, 80, 81, 82, 85, 86, 95, 96, 99,
  ];
  const rows = Array.from(
    skill.instructions.matchAll(/^\| ([\d, ]+) \| .+? \| ([\d, ]+) \| /gm),
    ([, left, right]) => `${left}, ${right}`,
  );
  const told = rows.flatMap((row) => row.split(", ").map(Number));
  expect(told.toSorted((a, b) => a - b)).toEqual(codes);
});
