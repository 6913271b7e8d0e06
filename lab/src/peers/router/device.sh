# The device of the tunnel to @peer@.
ip link add @device@ type xfrm dev @underlay@ if_id @number@
ip link set @device@ mtu 1400 multicast on up
ip address add fe80::5/64 dev @device@ nodad
