"""The screens of the customer's phone.

Texts and speeds are the original's (src/tau2/domains/telecom/user_tools.py and user_data_model.py, MIT).
"""

from manyturn.envs.benchmarks.tau.database import Record

SIGNALS = {
    "none": "📵 No Signal",
    "poor": "📶¹ Poor",
    "fair": "📶² Fair",
    "good": "📶³ Good",
    "excellent": "📶⁴ Excellent",
}
SIM_TEXTS = {
    "active": "Your SIM card is active and working.",
    "missing": "No SIM card detected in the phone.",
    "locked_pin": "The SIM card is locked with a PIN code.",
    "locked_puk": "The SIM card is locked with a PUK code.",
}
ADVICE = {
    "Very Poor": "Connection is very slow. Basic web browsing might be difficult.",
    "Poor": "Connection is slow. Web browsing may be sluggish, streaming difficult.",
    "Fair": "Connection is okay for web browsing and some standard definition streaming.",
    "Good": "Connection is good for most activities, including HD streaming.",
    "Excellent": "Connection is very fast.",
}
SPEEDS = {"2G": (0.1, 0.4), "3G": (1.0, 5.0), "4G": (10.0, 100.0), "5G": (50.0, 500.0), "none": (0.0, 0.0)}  # Mbit/s
SHARES = {"poor": 0.2, "fair": 0.5, "good": 0.8, "excellent": 1.0, "none": 0.0}
WORDS = ((1, "Very Poor"), (5, "Poor"), (25, "Fair"), (100, "Good"))


def status_bar(device: Record) -> str:
    """The icons at the top of the screen."""
    icons = ["✈️ Airplane Mode"] if device["airplane_mode"] else _cellular(device)
    if device["wifi_enabled"] and device["wifi_connected"]:
        icons.append(f"📡 Connected to {device['wifi_ssid']}" if device["wifi_ssid"] else "📡 Enabled")
    if device["vpn_connected"]:
        icons.append("🔒 VPN Connected")
    return " | ".join([*icons, f"🔋 {device['battery_level']}%"])


def _cellular(device: Record) -> list[str]:
    network = device["network_technology_connected"]
    icons = [SIGNALS[device["network_signal_strength"]]]
    if network != "none":
        icons.append(network)
    if not device["data_enabled"] or network == "none":
        return [*icons, "📵 Data Disabled"]
    return [*icons, "📱 Data Enabled", *(["🔽 Data Saver"] if device["data_saver_mode"] else [])]


def network_status(device: Record, sim: str) -> str:
    """The page of connections."""
    lines = [
        f"Airplane Mode: {'ON' if device['airplane_mode'] else 'OFF'}",
        f"SIM Card Status: {sim}",
        f"Cellular Connection: {device['network_connection_status']}",
        f"Cellular Signal: {device['network_signal_strength']}",
        f"Cellular Network Type: {device['network_technology_connected']}",
        f"Mobile Data Enabled: {'Yes' if device['data_enabled'] else 'No'}",
        f"Data Roaming Enabled: {'Yes' if device['roaming_enabled'] else 'No'}",
        f"Wi-Fi Radio: {'ON' if device['wifi_enabled'] else 'OFF'}",
        f"Wi-Fi Connected: {'Yes' if device['wifi_connected'] else 'No'}",
    ]
    if device["wifi_connected"]:
        lines.append(f"Connected Wi-Fi Network: {device['wifi_ssid']}")
    return "\n".join(lines)


def speed_test(device: Record) -> tuple[float, str]:
    """Megabits a second and a word for it, of mobile data that works."""
    details = device["vpn_details"]
    slow = device["vpn_connected"] and details and details["server_performance"] == "poor"
    factor = 0.1 if slow else 1.0
    if device["data_saver_mode"]:
        factor *= 0.2
    least, most = SPEEDS[device["network_technology_connected"]]
    speed = round((least + most) / 2.0 * SHARES[device["network_signal_strength"]] * factor, 2)
    return speed, next((word for below, word in WORDS if speed < below), "Excellent")


def vpn_text(device: Record) -> str:
    """The page of the VPN; its details stand there as Python writes them."""
    if device["vpn_connected"]:
        if not device["vpn_details"]:
            return "VPN is ON and connected (no specific details available)."
        level = device["vpn_details"]["server_performance"]
        parts = {name: value for name, value in device["vpn_details"].items() if name != "server_performance"}
        performance = f"<PerformanceLevel.{level.upper()}: {level!r}>"
        return f"VPN is ON and connected. Details: {repr(parts)[:-1]}, 'server_performance': {performance}}}"
    if device["vpn_enabled_setting"]:
        return "VPN is turned ON in settings, but currently not connected."
    return "VPN is turned OFF."


def allowed(app: Record) -> list[str]:
    """Names of an app's permissions that are granted."""
    return [name for name, granted in app["permissions"].items() if granted]
