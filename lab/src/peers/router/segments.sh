# The router's own address in the mesh. Answers to traces come from it, and envelopes.
ip address add @locator@1/128 dev lo
ip sr tunsrc set @locator@1

# A stop on the way. The kernel wants some device here, and it does not matter which.
ip -6 route add @locator@e/128 encap seg6local action End dev @device@

# The exit: what leaves its envelope is looked up in a table of its own, with the networks behind this router.
ip link add exit type vrf table 100
ip link set exit up
sysctl -q -w net.vrf.strict_mode=1
ip route add @network_v4@ dev @lan@ table 100
ip -6 route add @network_v6@ dev @lan@ table 100
ip -6 route add @locator@4/128 encap seg6local action End.DT4 vrftable 100 dev exit
ip -6 route add @locator@6/128 encap seg6local action End.DT6 vrftable 100 dev exit
ip -6 route add @locator@46/128 encap seg6local action End.DT46 vrftable 100 dev exit
